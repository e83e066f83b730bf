module example.com/project/nested

go 1.26.0
